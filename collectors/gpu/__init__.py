"""GPUs through NVML: a child process reads them once a second, the agent's process turns readings into energy."""
