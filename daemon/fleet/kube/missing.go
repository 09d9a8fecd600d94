package kube

import (
	"cnictl/daemon/fleet"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

// Missing returns why a source could not be read.
func Missing(err error) string { return reading.Missing(fleet.ErrorOf(err)) }

// source returns content that was read, or why it was not.
func source[T any](content T, err error) evidence.Source[T] {
	if err != nil {
		return evidence.Lacking[T](Missing(err))
	}
	return evidence.Read(content)
}
