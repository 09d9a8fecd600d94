package vpc

import (
	"cnictl/daemon/api/cause"
	"cnictl/plugin/skel"
)

// Codes of errors, from the CNI specification.
const (
	codeIO           = skel.CodeIO
	codeDecoding     = skel.CodeDecoding
	codeTryAgain     = skel.CodeTryAgain
	codeNotAvailable = skel.CodeNotAvailable
	codeLimited      = skel.CodeLimited
	codeInternal     = skel.CodeInternal
)

// cniError is a failed command as the runtime sees it.
type cniError struct {
	code    int
	msg     string
	cause   cause.Code // ours; empty only if a daemon refuses without one
	details string     // ours: what the message, being upstream's, cannot say
}

func internal(why cause.Code, msg string) *cniError {
	return &cniError{code: codeInternal, msg: msg, cause: why}
}

// printable is the error for the frame that prints it.
func (e *cniError) printable() *skel.Error {
	return &skel.Error{Code: e.code, Msg: e.msg, Cause: e.cause, Details: e.details}
}

// causeText is a cause with its sentence, as the daemon gives both.
func causeText(code, detail string) string { return skel.CauseText(code, detail) }
