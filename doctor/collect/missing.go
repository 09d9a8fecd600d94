package collect

import (
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/doctor/evidence"
)

// missing is why a source could not be read.
func missing(err error) string {
	e := fleet.ErrorOf(err)
	switch e.Reason {
	case introspect.ReasonForbidden:
		return evidence.MissingForbidden
	case introspect.ReasonRefused:
		return evidence.MissingRefused
	case introspect.ReasonTimeout, introspect.ReasonCancelled:
		return evidence.MissingTimeout
	case introspect.ReasonOff:
		return evidence.MissingDisabled
	case introspect.ReasonNoPod, introspect.ReasonNotFound, introspect.ReasonNoEndpoint, introspect.ReasonNotServed:
		return evidence.MissingAbsent
	}
	return e.Message
}

// source is content that was read, or why it was not.
func source[T any](content T, err error) evidence.Source[T] {
	if err != nil {
		return evidence.Lacking[T](missing(err))
	}
	return evidence.Read(content)
}

// then makes a source of another.
func then[T, U any](s evidence.Source[T], make func(T) U) evidence.Source[U] {
	if !s.OK() {
		return evidence.Lacking[U](s.Missing)
	}
	return evidence.Read(make(s.Content))
}
