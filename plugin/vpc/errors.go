package vpc

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
	details string // ours: what the message, being the original's, cannot say
}

func internal(msg string) *cniError { return &cniError{code: codeInternal, msg: msg} }
