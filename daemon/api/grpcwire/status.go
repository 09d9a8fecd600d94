package grpcwire

import "strconv"

// Status is how a call failed, with the codes of gRPC.
type Status struct {
	Code    uint32
	Message string
}

// Codes of gRPC that this package gives itself.
const (
	CodeCanceled          = 1
	CodeUnknown           = 2
	CodeDeadlineExceeded  = 4
	CodePermissionDenied  = 7
	CodeResourceExhausted = 8
	CodeUnimplemented     = 12
	CodeInternal          = 13
	CodeUnavailable       = 14
	CodeUnauthenticated   = 16
)

var codeNames = [...]string{
	"OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied", "ResourceExhausted",
	"FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable", "DataLoss", "Unauthenticated",
}

// Error is the text that grpc gives a status, which other programs search for.
func (s *Status) Error() string {
	name := "Code(" + strconv.FormatUint(uint64(s.Code), 10) + ")"
	if int(s.Code) < len(codeNames) {
		name = codeNames[s.Code]
	}
	return "rpc error: code = " + name + " desc = " + s.Message
}

// Broken is a connection that failed, in grpc's words.
func Broken(why string) *Status {
	return &Status{CodeUnavailable, "connection error: desc = " + strconv.Quote(why)}
}

func internalStatus(why string) *Status { return &Status{CodeInternal, why} }

// httpStatus is what an answer stands for that is no gRPC.
func httpStatus(status string) uint32 {
	switch status {
	case "", "400":
		return CodeInternal
	case "401":
		return CodeUnauthenticated
	case "403":
		return CodePermissionDenied
	case "404":
		return CodeUnimplemented
	case "429", "502", "503", "504":
		return CodeUnavailable
	}
	return CodeUnknown
}

// resetStatus is what a stream that the server ended without trailers stands for.
func resetStatus(code uint32) *Status {
	names := [...]string{
		"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED", "FRAME_SIZE_ERROR",
		"REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
	}
	s := internalStatus("")
	switch code {
	case resetFlowControl, resetCalm:
		s.Code = CodeResourceExhausted
	case resetRefused:
		s.Code = CodeUnavailable
	case resetCancel:
		s.Code = CodeCanceled
	case resetSecurity:
		s.Code = CodePermissionDenied
	}
	name := "unknown error code 0x" + strconv.FormatUint(uint64(code), 16)
	if int(code) < len(names) {
		name = names[code]
	} else {
		s.Code = CodeUnknown
	}
	s.Message = "stream terminated by RST_STREAM with error code: " + name
	return s
}

// unescape decodes a grpc-message: percent signs stand before two hexadecimal digits;
// where they do not, they are themselves.
func unescape(s string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if high, low := hexDigit(s[i+1]), hexDigit(s[i+2]); high < 16 && low < 16 {
				out = append(out, high<<4|low)
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 16
}
