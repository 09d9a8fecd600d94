package keeper

import (
	"errors"

	"cnictl/daemon/api/cause"
)

// What a procedure could not do, found in its error with errors.Is.
var (
	ErrCreate              = errors.New("create ENI")
	ErrDeleteOnTermination = errors.New("set delete-on-termination")
	ErrFindAttachment      = errors.New("find attachment")
	ErrDetach              = errors.New("detach ENI")
)

func failure(err error) Failure {
	var f *Failure
	if errors.As(err, &f) {
		return *f
	}
	return Failure{Err: err}
}

// CauseOf says why a procedure failed; "" for nil.
func CauseOf(err error) cause.Code {
	if err == nil {
		return ""
	}
	if c := failure(err).Cause; c != "" {
		return c
	}
	return cause.Internal
}

// IsNotFound reports that the ENI or attachment does not exist (any more).
func IsNotFound(err error) bool { return err != nil && failure(err).NotFound }

// IsAddressLimit reports that the ENI takes no further address.
func IsAddressLimit(err error) bool { return err != nil && failure(err).AddressLimit }

// IsUnanswered reports that EC2 may have done what it was asked for.
func IsUnanswered(err error) bool { return err != nil && failure(err).Unanswered }

// IsThrottled reports that EC2's request limits refused a call.
func IsThrottled(err error) bool { return CauseOf(err) == cause.EC2Throttled }

// IsSubnetExhausted reports that a subnet has not as many free addresses.
func IsSubnetExhausted(err error) bool { return CauseOf(err) == cause.SubnetExhausted }

// IsFragmented reports that a subnet has no free aligned /28.
func IsFragmented(err error) bool { return CauseOf(err) == cause.SubnetFragmented }

// hostFailure is a failure of this host and not of EC2.
func hostFailure(err error) error {
	if f := failure(err); f.Cause != "" {
		return err // the host says more, such as a link that is missing
	}
	return &Failure{Cause: cause.Internal, Err: err}
}
