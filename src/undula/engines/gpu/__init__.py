"""The common part of all devices: transforms as lists of launches, and arrays of many libraries."""
