"""What all devices have in common: a transform as a list of launches, and arrays of many libraries."""
