package collect

import (
	"cnictl/daemon/fleet"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

// missing returns why a source could not be read.
func missing(err error) string { return reading.Missing(fleet.ErrorOf(err)) }

// source returns content that was read, or why it was not.
func source[T any](content T, err error) evidence.Source[T] {
	if err != nil {
		return evidence.Lacking[T](missing(err))
	}
	return evidence.Read(content)
}

// then derives a source from another.
func then[T, U any](s evidence.Source[T], make func(T) U) evidence.Source[U] {
	if !s.OK() {
		return evidence.Lacking[U](s.Missing)
	}
	return evidence.Read(make(s.Content))
}
