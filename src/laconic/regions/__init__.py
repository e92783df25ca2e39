"""Where errors clump: neighbourhoods of rows, the clumping solver, and the clump score."""
