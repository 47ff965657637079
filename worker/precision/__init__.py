"""What is half and what stays FP32: islands, the plan that is made of them, and the rewrite that applies it."""
