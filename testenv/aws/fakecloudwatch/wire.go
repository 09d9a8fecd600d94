package fakecloudwatch

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

// The SDK's protocol: Smithy RPC v2, https://smithy.io/2.0/additional-specs/protocols/smithy-rpc-v2.html
const (
	servicePath  = "/service/GraniteServiceVersion20100801/operation/"
	operation    = "PutMetricData"
	protocol     = "rpc-v2-cbor"
	contentType  = "application/cbor"
	maxBody      = 1 << 20 // bytes of a request: the service's limit
	signingScope = "/monitoring/aws4_request"
)

// request is a PutMetricData request. It lacks the members that this project's clients do not
// use, so that a use of them is noticed.
type request struct {
	Namespace  *string `cbor:"Namespace"`
	MetricData []datum `cbor:"MetricData"`
}

type datum struct {
	MetricName *string     `cbor:"MetricName"`
	Dimensions []dimension `cbor:"Dimensions"`
	Timestamp  cbor.Tag    `cbor:"Timestamp"`
	Value      *float64    `cbor:"Value"`
	Unit       *string     `cbor:"Unit"`
}

type dimension struct {
	Name  *string `cbor:"Name"`
	Value *string `cbor:"Value"`
}

// decoder refuses unknown members and duplicate keys.
var decoder = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		TimeTag:           cbor.DecTagIgnored,
		MaxNestedLevels:   8,
	}.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return mode
}()

// apiError is an error of the service.
type apiError struct {
	status        int
	code, message string
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

func refuse(code, format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, code, fmt.Sprintf(format, args...)}
}

// readRequest checks the method, path and headers of a request and decodes it.
func readRequest(r *http.Request, region string) (*request, *apiError) {
	if name, ok := strings.CutPrefix(r.URL.Path, servicePath); !ok || name != operation || r.Method != http.MethodPost {
		return nil, &apiError{http.StatusNotFound, "UnknownOperationException", r.Method + " " + r.URL.Path}
	}
	for _, h := range []struct{ name, want string }{{"Smithy-Protocol", protocol}, {"Content-Type", contentType}, {"Accept", contentType}} {
		if got := r.Header.Get(h.name); got != h.want {
			return nil, refuse("SerializationException", "header %s is %q, want %q", h.name, got, h.want)
		}
	}
	auth := r.Header.Get("Authorization")
	if !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential=") || !strings.Contains(auth, "/"+region+signingScope) {
		return nil, &apiError{http.StatusForbidden, "MissingAuthenticationToken", "not signed for monitoring in " + region}
	}
	body, err := readBody(r)
	if err != nil {
		return nil, refuse("SerializationException", "%v", err)
	}
	in := new(request)
	if err := decoder.Unmarshal(body, in); err != nil {
		return nil, refuse("SerializationException", "%v", err)
	}
	return in, nil
}

func readBody(r *http.Request) ([]byte, error) {
	body := io.Reader(r.Body)
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "":
	case "gzip":
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return nil, fmt.Errorf("read gzip: %w", err)
		}
		body = unzipped
	default:
		return nil, fmt.Errorf("content encoding %q", encoding)
	}
	b, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	if err == nil && len(b) > maxBody {
		err = fmt.Errorf("longer than %d bytes", maxBody)
	}
	return b, err
}

// writeReply answers as the service does: an empty structure, or an error.
func writeReply(w http.ResponseWriter, e *apiError) {
	w.Header().Set("Smithy-Protocol", protocol)
	w.Header().Set("Content-Type", contentType)
	status, body := http.StatusOK, map[string]string{}
	if e != nil {
		fault := "Sender"
		if e.status >= http.StatusInternalServerError {
			fault = "Receiver"
		}
		w.Header().Set("X-Amzn-Query-Error", e.code+";"+fault)
		status, body = e.status, map[string]string{"__type": "com.amazonaws.cloudwatch#" + e.code, "message": e.message}
	}
	var b bytes.Buffer
	if err := cbor.NewEncoder(&b).Encode(body); err != nil {
		panic(err) // strings can be encoded
	}
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a client that has gone needs no answer
}
