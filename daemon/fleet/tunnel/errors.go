package tunnel

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"cnictl/daemon/api/introspect"
)

// Error is a failure of a tunnel, a stream or a request to the API server.
type Error struct {
	Reason introspect.Reason
	Code   int   // HTTP status of the API server's response; 0 if there was none
	Err    error // what happened, for people

	// Unreachable: the API server could not be connected to, which says nothing about the
	// requested node.
	Unreachable bool

	// The missing permission; only with ReasonForbidden.
	Verb      string // get, create
	Group     string // of the resource; "" = core
	Resource  string // pods/portforward
	Namespace string // "" = cluster-wide
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// NodeReason returns Reason, for callers that know only this method.
func (e *Error) NodeReason() introspect.Reason { return e.Reason }

// APIUnreachable returns Unreachable, for callers that know only this method.
func (e *Error) APIUnreachable() bool { return e.Unreachable }

// Gone reports that the API server no longer has the requested resource version.
func (e *Error) Gone() bool { return e.Code == http.StatusGone }

// Hopeless reports whether retrying cannot succeed until someone grants a permission or
// supplies credentials.
func (e *Error) Hopeless() bool {
	return e.Reason == introspect.ReasonForbidden || e.Reason == introspect.ReasonCredential
}

// Request describes a request to the API server, for its error.
type Request struct {
	Verb, Group, Resource, Namespace, Name string
}

// maxText limits how much of the other side's text an error repeats.
const maxText = 400

// Failed returns the error for a request that got no response.
func Failed(ctx context.Context, err error) *Error {
	var known *Error
	var dns *net.DNSError
	var op *net.OpError
	var noProgram *exec.Error
	var record tls.RecordHeaderError
	reason, text := introspect.ReasonTransport, error(nil)
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled):
		reason, text = introspect.ReasonCancelled, errors.New("cancelled")
	case errors.As(err, &noProgram), strings.Contains(err.Error(), "getting credentials: "):
		// client-go has no error type for a failed credential program.
		reason, text = introspect.ReasonCredential, fmt.Errorf("cannot get credentials for the cluster: %s", brief(innermost(err).Error()))
	case distrusted(err), errors.As(err, &record):
		reason, text = introspect.ReasonCredential,
			fmt.Errorf("the API server's certificate does not match the kubeconfig: %s", brief(innermost(err).Error()))
	case errors.As(err, &dns) && !dns.IsTimeout:
		reason, text = introspect.ReasonUnresolved, fmt.Errorf("cannot resolve the API server's name %q", dns.Name)
	case isTimeout(err), ctx.Err() != nil:
		reason, text = introspect.ReasonTimeout, errors.New("the API server did not answer in time")
	case errors.As(err, &op) && op.Op == "dial":
		text = fmt.Errorf("API server %v unreachable: %w", op.Addr, innermost(err))
	default:
		text = fmt.Errorf("connection to the API server lost: %w", innermost(err))
	}
	dialled := errors.As(err, &op) && op.Op == "dial"
	return &Error{Reason: reason, Err: text,
		Unreachable: reason != introspect.ReasonCancelled && (dialled || reason == introspect.ReasonUnresolved)}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.ETIMEDOUT) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// distrusted reports that the server's certificate does not match, or that it rejected ours.
func distrusted(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
		alert        tls.AlertError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &hostname) || errors.As(err, &invalid) ||
		errors.As(err, &alert)
}

func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// status is the used part of a metav1.Status. Only the API server itself responds with one.
type status struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
	Code    int    `json:"code"`
}

// Refused returns the error for a request that the API server refused, based on its response.
func Refused(r Request, code int, body []byte) *Error {
	e := &Error{Reason: introspect.ReasonStatus, Code: code}
	said, _ := readStatus(body)
	switch {
	case code == http.StatusForbidden:
		e.Reason, e.Verb, e.Group, e.Resource, e.Namespace = introspect.ReasonForbidden, r.Verb, r.Group, r.Resource, r.Namespace
		e.Err = fmt.Errorf("not allowed: %s", r.rule())
		return e
	case code == http.StatusUnauthorized:
		e.Reason = introspect.ReasonCredential
		e.Err = errors.New("the API server does not accept the credentials (they may have expired)")
		return e
	case code == http.StatusNotFound && strings.HasPrefix(r.Resource, "pods"):
		e.Reason = introspect.ReasonNoPod
	case code == http.StatusNotFound:
		e.Reason = introspect.ReasonNotFound
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		e.Reason = introspect.ReasonBusy
	case code == http.StatusGatewayTimeout:
		e.Reason = introspect.ReasonTimeout
	case code == http.StatusInternalServerError || code == http.StatusBadGateway:
		e.Reason = backendReason(said.Message)
	case code == http.StatusBadRequest && said.Reason == "BadRequest" && strings.HasPrefix(r.Resource, "pods/"):
		e.Reason = introspect.ReasonPodNotRunning // it is not bound to a node yet
	}
	text := said.Message
	if text == "" {
		text = string(body)
	}
	if text = brief(text); text == "" {
		text = "no text"
	}
	e.Err = fmt.Errorf("the API server answered %d to %s: %s", code, r.what(), text)
	return e
}

// rule describes the permission that a request needs, for people.
func (r Request) rule() string {
	resource := r.Resource
	if r.Group != "" {
		resource += "." + r.Group
	}
	if r.Namespace == "" {
		return fmt.Sprintf("the user lacks the verb %q on %s", r.Verb, resource)
	}
	return fmt.Sprintf("the user lacks the verb %q on %s in namespace %s", r.Verb, resource, r.Namespace)
}

func (r Request) what() string {
	name := r.Name
	if r.Namespace != "" && name != "" {
		name = r.Namespace + "/" + name
	}
	return strings.TrimSpace(r.Verb + " " + r.Resource + " " + name)
}

func readStatus(body []byte) (status, bool) {
	var s status
	err := json.Unmarshal(body, &s)
	return s, err == nil && s.Kind == "Status"
}

// backendReason derives from the text of the API server or the kubelet what failed: there is
// nothing but the text.
func backendReason(text string) introspect.Reason {
	switch {
	case containsAny(text, "i/o timeout", "timed out", "deadline exceeded", "no route to host"):
		return introspect.ReasonTimeout
	case containsAny(text, "unable to find pod", "not found", "pod does not exist", "is not running", "not running"):
		return introspect.ReasonPodNotRunning
	}
	return introspect.ReasonTransport
}

// streamError returns the error of a stream from the text that the node's runtime wrote to the
// error stream.
func streamError(text string) *Error {
	e := &Error{Reason: backendReason(text), Err: fmt.Errorf("the node's runtime: %s", brief(text))}
	if strings.Contains(text, "connection refused") {
		e.Reason, e.Err = introspect.ReasonRefused, errors.New("connection refused")
	}
	return e
}

func containsAny(text string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// brief puts a text on one line and shortens it.
func brief(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
