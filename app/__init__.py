"""Wattmix: dollars, joules and grams of CO2 per million tokens on each GPU fleet, and the mix of fleets to run."""

__version__ = "0.1.0"
