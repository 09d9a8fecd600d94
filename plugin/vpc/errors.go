package vpc

import (
	"cnictl/daemon/api/cause"
	"cnictl/plugin/skel"
)

// Error codes, from the CNI specification.
const (
	codeIO           = skel.CodeIO
	codeDecoding     = skel.CodeDecoding
	codeTryAgain     = skel.CodeTryAgain
	codeNotAvailable = skel.CodeNotAvailable
	codeLimited      = skel.CodeLimited
	codeInternal     = skel.CodeInternal
)

// cniError is a command's failure as the runtime sees it.
type cniError struct {
	code    int
	msg     string
	cause   cause.Code // ours; empty only if a daemon refuses without giving one
	details string     // ours: what upstream's message cannot say
}

func internal(why cause.Code, msg string) *cniError {
	return &cniError{code: codeInternal, msg: msg, cause: why}
}

// printable converts the error for the frame, which prints it.
func (e *cniError) printable() *skel.Error {
	return &skel.Error{Code: e.code, Msg: e.msg, Cause: e.cause, Details: e.details}
}

// causeText joins a cause's code with its sentence, both from the daemon.
func causeText(code, detail string) string { return skel.CauseText(code, detail) }
