"""Prices of rented GPUs: what a provider's market says at a moment, per GPU, with what each price rests on."""
