"""Made-up nodes for the demo: they follow the study's operating points, and each batch says that it is simulated."""
