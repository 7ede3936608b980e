"""Names and defaults of other packages, computed by this one."""
