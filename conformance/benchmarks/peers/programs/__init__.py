"""One file a subject: what it installs, what it does for durability, and a `Program` that `life` runs."""
