package fakeaws

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	apiVersion = "2016-11-15"
	namespace  = "http://ec2.amazonaws.com/doc/" + apiVersion + "/"
)

// action is one EC2 action: parse reads the form and returns the function that carries the
// action out and returns the members of <ActionResponse>.
type action struct {
	mutating bool
	parse    func(f *form) func(w *World) (any, error)
}

var actions = map[string]action{
	"AssignPrivateIpAddresses":        {true, assignPrivateIPAddresses},
	"UnassignPrivateIpAddresses":      {true, unassignPrivateIPAddresses},
	"AssignIpv6Addresses":             {true, assignIPv6Addresses},
	"UnassignIpv6Addresses":           {true, unassignIPv6Addresses},
	"CreateNetworkInterface":          {true, createNetworkInterface},
	"AttachNetworkInterface":          {true, attachNetworkInterface},
	"ModifyNetworkInterfaceAttribute": {true, modifyNetworkInterfaceAttribute},
	"DetachNetworkInterface":          {true, detachNetworkInterface},
	"DeleteNetworkInterface":          {true, deleteNetworkInterface},
	"CreateTags":                      {true, createTags},
	"DescribeNetworkInterfaces":       {false, describeNetworkInterfaces},
	"DescribeInstances":               {false, describeInstances},
	"DescribeInstanceTypes":           {false, describeInstanceTypes},
	"DescribeSubnets":                 {false, describeSubnets},
	"DescribeTags":                    {false, describeTags},
	"DescribeSecurityGroups":          {false, describeSecurityGroups},
	"DescribeRouteTables":             {false, describeRouteTables},
	"GetSubnetCidrReservations":       {false, getSubnetCIDRReservations},
}

// EC2Handler serves a world's EC2 API, the Query protocol of version 2016-11-15. Requests signed
// for EKS or IAM get the calls of account.go.
func EC2Handler(w *World) http.Handler { return &ec2Server{world: w} }

type ec2Server struct {
	world    *World
	identify func(*http.Request) string // may be nil; see caller
	observe  func(Call)                 // may be nil
}

func (s *ec2Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	switch scopeOf(r) {
	case "eks":
		s.serveEKS(rw, r)
		return
	case "iam":
		s.serveIAM(rw, r)
		return
	}
	start := s.world.opts.Now()
	began := time.Now()
	id := s.world.uuid()
	name, f, err := s.read(rw, r)
	caller := s.caller(r)
	var reply any
	var fault Fault
	if err == nil {
		reply, fault, err = s.serve(name, caller, f)
	}
	call := Call{Action: name, Caller: caller, Start: start, Took: time.Since(began), Fault: fault.String()}
	if f != nil {
		call.Params = f.params()
	}
	var a response
	if err != nil {
		e := asError(err)
		call.Code = e.Code
		a = errorAnswer(e, id)
	} else {
		if fault.Reply == ReplyEmpty {
			reply = members{}
		}
		a = replyAnswer(name, id, reply)
		if fault.Reply == ReplyForeign {
			a.body = foreign(a.body)
		}
	}
	a.fault = fault.Reply
	s.log(call)
	a.send(rw, r, s.world.done)
}

func (s *ec2Server) log(c Call) {
	l := &s.world.wire
	l.do(func() { l.calls = append(l.calls, c) })
	if s.observe != nil {
		s.observe(c)
	}
}

// read parses a request and finds its action.
func (s *ec2Server) read(rw http.ResponseWriter, r *http.Request) (string, *form, error) {
	if r.Method != http.MethodPost || r.URL.Path != "/" || r.URL.RawQuery != "" {
		s.world.violate("EC2: %s %s: only POST / without a query is served", r.Method, r.URL)
		return "", nil, &Error{Code: "MalformedRequest", Message: "only POST / with a form is served", Status: http.StatusMethodNotAllowed}
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		s.world.violate("EC2: content type %q", r.Header.Get("Content-Type"))
		return "", nil, fail("MalformedRequest", "the content type must be application/x-www-form-urlencoded")
	}
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxForm))
	if err != nil {
		return "", nil, fail("MalformedRequest", "read body: %v", err)
	}
	name, f, err := parseForm(string(body))
	if err != nil {
		s.world.violate("EC2: %v", err)
		return name, f, err
	}
	return name, f, s.authorised(r)
}

// parseForm decodes a request body.
func parseForm(body string) (string, *form, error) {
	values, err := url.ParseQuery(body)
	if err != nil {
		return "", nil, fail("MalformedQueryString", "%v", err)
	}
	name, f := values.Get("Action"), newForm(values)
	if v := values.Get("Version"); v != apiVersion {
		return name, f, fail("InvalidParameterValue", "Version %q: %s is served", v, apiVersion)
	}
	if _, ok := actions[name]; !ok {
		return name, f, fail(codeInvalidAction, "The action %q is not valid for this endpoint.", name)
	}
	return name, f, nil
}

// authorised checks that the call was signed for this region and for EC2. The
// signature itself is not verified: the world has no secrets.
func (s *ec2Server) authorised(r *http.Request) error {
	auth := r.Header.Get("Authorization")
	if !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 ") {
		return fail(codeAuthFailure, "AWS was not able to validate the provided access credentials: the request is not signed")
	}
	if want := "/" + s.world.opts.Region + "/ec2/aws4_request"; !strings.Contains(auth, want) {
		return fail(codeAuthFailure, "Credential should be scoped to a valid region and service: %s", want[1:])
	}
	return nil
}

// serve runs a known action: form, permission, limits, latency, effect. It returns the fault
// that the call met; the caller still applies that fault's Reply.
func (s *ec2Server) serve(name, caller string, f *form) (reply any, met Fault, err error) {
	w, a := s.world, actions[name]
	nth := w.count(name)
	run := a.parse(f)
	dry := f.boolean("DryRun")
	instance := f.shared.values["InstanceId"]
	unknown, err := f.finish()
	for _, p := range unknown {
		w.violate("EC2: %s: unknown parameter %s", name, p)
	}
	if err != nil {
		return nil, Fault{}, err
	}
	if err := w.authorise(caller, name, f); err != nil {
		return nil, Fault{}, err
	}
	if dry {
		return nil, Fault{}, fail(codeDryRun, "Request would have succeeded, but DryRun flag is set.")
	}
	if name == "AttachNetworkInterface" {
		defer w.serialise(instance)()
	}
	if e := w.faultFor(name, nth, f.shared.values); e != nil {
		met = *e
	}
	if !met.effective() {
		w.pause(name)
		return nil, met, met.answer()
	}
	if err := w.admit(name, a.mutating, unfiltered(f)); err != nil {
		return nil, Fault{}, err
	}
	w.pause(name)
	f.shared.fault = met
	reply, err = w.noteUnknownFilter(name)(run(w))
	if met.failing() {
		err = met.answer()
	}
	return reply, met, err
}

// noteUnknownFilter records unknown filters and passes results on.
func (w *World) noteUnknownFilter(name string) func(any, error) (any, error) {
	return func(reply any, err error) (any, error) {
		var unknown *unknownFilterError
		if errors.As(err, &unknown) {
			w.violate("EC2: %s: unknown filter %s", name, unknown.name)
			return nil, fail(codeInvalidValue, "The filter '%s' is invalid", unknown.name)
		}
		return reply, err
	}
}

func unfiltered(f *form) bool {
	for k := range f.shared.values {
		if k != "Action" && k != "Version" {
			return false
		}
	}
	return true
}

func (w *World) count(name string) int {
	return locked(&w.wire, func() int {
		w.wire.counts[name]++
		return w.wire.counts[name]
	})
}

// serialise waits until no other attachment of the instance is in progress.
func (w *World) serialise(instanceID string) (release func()) {
	w.mu.Lock()
	i := w.instances[instanceID]
	w.mu.Unlock()
	if i == nil || !w.opts.SerialiseAttach {
		return func() {}
	}
	select {
	case i.attach <- struct{}{}:
		return func() { <-i.attach }
	case <-w.done:
		return func() {}
	}
}

func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: "InternalError", Message: err.Error()}
}

type errorResponse struct {
	XMLName   xml.Name   `xml:"Response"`
	Errors    []xmlError `xml:"Errors>Error"`
	RequestID string     `xml:"RequestID"`
}

type xmlError struct {
	Code    string
	Message string
}

func errorAnswer(e *Error, id string) response {
	body, err := xml.Marshal(errorResponse{Errors: []xmlError{{e.Code, printable(e.Message)}}, RequestID: id})
	if err != nil {
		return notEncoded("an error", err)
	}
	return xmlAnswer(e.status(), id, body)
}

// printable replaces bytes that XML cannot carry.
func printable(s string) string { return strings.ToValidUTF8(s, "?") }

func replyAnswer(name, id string, reply any) response {
	body, err := xml.Marshal(envelope{name: name, id: id, reply: reply})
	if err != nil {
		return notEncoded(name, err)
	}
	return xmlAnswer(http.StatusOK, id, body)
}

func xmlAnswer(status int, id string, body []byte) response {
	h := http.Header{}
	h.Set("Content-Type", "text/xml;charset=UTF-8")
	h.Set("X-Amzn-Requestid", id)
	return response{status: status, header: h, body: append([]byte(xml.Header), body...)}
}

// notEncoded is the answer to a bug in the server.
func notEncoded(what string, err error) response {
	return response{status: http.StatusInternalServerError, header: http.Header{}, body: fmt.Appendf(nil, "encode %s: %v", what, err)}
}

// envelope wraps a reply's members into <ActionResponse>.
type envelope struct {
	name, id string
	reply    any
}

func (e envelope) MarshalXML(enc *xml.Encoder, _ xml.StartElement) error {
	root := xml.StartElement{Name: xml.Name{Space: namespace, Local: e.name + "Response"}}
	if err := enc.EncodeToken(root); err != nil {
		return err
	}
	if err := enc.EncodeElement(e.id, xml.StartElement{Name: xml.Name{Local: "requestId"}}); err != nil {
		return err
	}
	if err := enc.Encode(e.reply); err != nil {
		return err
	}
	return enc.EncodeToken(root.End())
}
