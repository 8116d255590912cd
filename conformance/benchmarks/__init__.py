"""What things cost, as ratios to a raw limit or a peer that is measured in the same run."""
