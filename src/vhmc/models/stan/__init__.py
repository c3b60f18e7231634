"""Stan programs, compiled into a library that stays in memory."""
