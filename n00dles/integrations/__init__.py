"""Bridges to what others run and watch programs with. Each needs an extra, and imports it only when it is used."""
