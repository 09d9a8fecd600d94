package vpc

import "cnictl/daemon/api/cause"

// Codes of errors, from the CNI specification.
const (
	codeIncompatibleVersion = 1
	codeUnknownContainer    = 3
	codeBadEnvironment      = 4
	codeIO                  = 5
	codeDecoding            = 6
	codeBadConfig           = 7
	codeBadNetns            = 8
	codeTryAgain            = 11
	codeNotAvailable        = 50 // STATUS: no ADD can succeed
	codeLimited             = 51 // STATUS: and pods that run are cut off
	codeInternal            = 999
)

// cniError is a failed command as the runtime sees it.
type cniError struct {
	code    int
	msg     string
	cause   cause.Code // ours; empty only if a daemon refuses without one
	details string     // ours: what the message, being the original's, cannot say
}

func internal(why cause.Code, msg string) *cniError {
	return &cniError{code: codeInternal, msg: msg, cause: why}
}

// shown is the member "details": the cause, and what there is to say of it.
func (e *cniError) shown() string {
	if e.details == "" {
		return causeText(string(e.cause), e.cause.Title())
	}
	return causeText(string(e.cause), e.details)
}

// causeText is a cause with its sentence, as the daemon gives both.
func causeText(code, detail string) string {
	if code == "" || detail == "" {
		return code + detail
	}
	return code + ": " + detail
}
