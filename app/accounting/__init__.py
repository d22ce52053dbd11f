"""The maths of dollars, joules, grams and latencies. Pure: data and time are passed in."""
