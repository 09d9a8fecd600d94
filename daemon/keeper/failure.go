package keeper

import (
	"errors"

	"cnictl/daemon/api/cause"
)

// What a procedure failed to do; check with errors.Is.
var (
	ErrCreate         = errors.New("create ENI")
	ErrFindAttachment = errors.New("find attachment")
	ErrDetach         = errors.New("detach ENI")
)

func failure(err error) Failure {
	var f *Failure
	if errors.As(err, &f) {
		return *f
	}
	return Failure{Err: err}
}

// CauseOf returns why a procedure failed; "" for nil.
func CauseOf(err error) cause.Code {
	if err == nil {
		return ""
	}
	if c := failure(err).Cause; c != "" {
		return c
	}
	return cause.Internal
}

// IsNotFound reports whether the ENI or attachment does not exist (any more).
func IsNotFound(err error) bool { return err != nil && failure(err).NotFound }

// IsAddressLimit reports whether the ENI cannot take more addresses.
func IsAddressLimit(err error) bool { return err != nil && failure(err).AddressLimit }

// IsUnanswered reports whether EC2 may have carried out the request although it failed.
func IsUnanswered(err error) bool { return err != nil && failure(err).Unanswered }

// IsThrottled reports whether EC2's request limits refused a call.
func IsThrottled(err error) bool { return CauseOf(err) == cause.EC2Throttled }

// IsSubnetExhausted reports whether a subnet has too few free addresses.
func IsSubnetExhausted(err error) bool { return CauseOf(err) == cause.SubnetExhausted }

// IsFragmented reports whether a subnet has no free aligned /28.
func IsFragmented(err error) bool { return CauseOf(err) == cause.SubnetFragmented }

// hostFailure marks an error as a failure of this host rather than of EC2.
func hostFailure(err error) error {
	if f := failure(err); f.Cause != "" {
		return err // the host names a more specific cause, such as a missing link
	}
	return &Failure{Cause: cause.Internal, Err: err}
}
