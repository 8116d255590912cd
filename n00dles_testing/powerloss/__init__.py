"""What a disk may hold after the power has failed: every legal state, and what a store makes of it."""
