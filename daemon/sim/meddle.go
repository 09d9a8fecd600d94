package sim

// meddle lets other people change things.
func (w *World) meddle() {}
