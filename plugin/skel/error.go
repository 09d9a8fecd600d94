package skel

import "cnictl/daemon/api/cause"

// Error codes, from the CNI specification.
const (
	CodeIncompatibleVersion = 1
	CodeBadEnvironment      = 4
	CodeIO                  = 5
	CodeDecoding            = 6
	CodeBadConfig           = 7
	CodeBadNetns            = 8
	CodeTryAgain            = 11
	CodeNotAvailable        = 50 // STATUS: no ADD can succeed
	CodeLimited             = 51 // STATUS: in addition, running pods are cut off
	CodeInternal            = 999
)

// Error is a command's failure as the runtime sees it.
type Error struct {
	Code    int
	Msg     string
	Cause   cause.Code
	Details string // what upstream's message cannot say
}

func (e *Error) Error() string {
	if e.Details == "" {
		return e.Msg
	}
	return e.Msg + "; " + e.Details
}

// JSON renders the error for standard output; its details begin with the cause.
func (e *Error) JSON() []byte {
	details := e.Details
	if details == "" {
		details = e.Cause.Title()
	}
	details = CauseText(string(e.Cause), details)
	var o Object
	o.Open('{')
	o.Number("code", e.Code)
	o.Text("msg", e.Msg)
	o.TextIf("details", details)
	o.Close('}')
	return o.Bytes()
}

// CauseText joins the code of a cause with its sentence.
func CauseText(code, detail string) string {
	if code == "" || detail == "" {
		return code + detail
	}
	return code + ": " + detail
}
