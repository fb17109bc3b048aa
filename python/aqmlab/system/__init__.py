"""What this process does with the machine: files, memory, processors, signals."""
