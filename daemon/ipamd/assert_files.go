package ipamd

// Objects that are no state of the kernel's network.
const (
	objectCheckpoint = "checkpoint"
	objectSocket     = "socket"
)
