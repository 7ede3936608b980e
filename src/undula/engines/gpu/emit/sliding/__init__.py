"""The sliding emitter: one pass over the array, with all intermediate values in registers.

Each lane owns a few columns and marches down the rows of its strip, two rows at a time. Steps across rows
keep the earlier rows that they need in registers; steps within rows get values from neighbouring lanes.
Groups of lanes overlap with the next group, and strips with the next strip, by the reach of the results.
There is no shared memory and no barrier between steps:

    for each pair of rows:  load the pair after next │ steps down │ steps along │ store four bands

========== =======================================================================
module     contents
========== =======================================================================
`geometry` how columns and rows are distributed over lanes
`load`     functions that read a row of a lane, also beyond the ends of the array
`along`    the function that runs the operator within a row
`march`    the kernel, its loop over rows, and the operator across rows
`store`    the results of a pair of rows, written to the bands
`levels`   the kernel that computes all levels of a batch of planes
`packed`   the loads and stores of that kernel
========== =======================================================================
"""

from .geometry import LaneGeometry
from .levels import LEVEL_EXTENTS, SharedApproximations, emit_levels
from .march import EXTENTS, emit

__all__ = ["EXTENTS", "LEVEL_EXTENTS", "LaneGeometry", "SharedApproximations", "emit", "emit_levels"]
