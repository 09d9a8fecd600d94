package fleetsim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	contentJSON = "application/json"
	gitVersion  = "v1.35.4-eks-0f1e2d3"
	gzipFrom    = 128 << 10 // shorter answers are not compressed, as in kube-apiserver
)

// serveAPI serves the API server's requests.
func (s *Sim) serveAPI(w http.ResponseWriter, r *http.Request) {
	who, ok := s.users.ask(r)
	if !ok {
		if r.Header.Get("Authorization") == "" {
			s.fail(w, apierrors.NewForbidden(schema.GroupResource{}, "", fmt.Errorf("User \"system:anonymous\" cannot get path %q", r.URL.Path)))
			return
		}
		s.fail(w, apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	path := r.URL.Path
	switch {
	case path == "/version" || path == "/version/":
		s.answer(w, r, map[string]string{"major": "1", "minor": "35", "gitVersion": gitVersion, "platform": "linux/amd64"})
	case path == "/healthz" || path == "/readyz" || path == "/livez":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok"))
	case s.discover(w, r):
	default:
		req, ok := s.parsePath(path)
		if !ok {
			s.fail(w, unknownPath())
			return
		}
		if err := s.serveResource(w, r, who, req); err != nil {
			s.fail(w, err)
		}
	}
}

// request is the resource that a path names.
type request struct {
	resource             *resource
	namespace, name, sub string
}

// word returns the resource as RBAC rules name it.
func (q request) word() string {
	if q.sub != "" {
		return q.resource.name + "/" + q.sub
	}
	return q.resource.name
}

func (q request) access(verb string) access {
	return access{verb, q.resource.groupResource().Group, q.word(), q.namespace, q.name}
}

func (s *Sim) parsePath(path string) (request, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var group string
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[1:]
	case len(parts) >= 4 && parts[0] == "apis":
		group, parts = parts[1], parts[2:]
	default:
		return request{}, false
	}
	version, parts := parts[0], parts[1:]
	var q request
	if len(parts) >= 3 && parts[0] == "namespaces" {
		q.namespace, parts = parts[1], parts[2:]
	}
	q.resource = s.kinds.find(group, version, parts[0])
	if q.resource == nil || (q.namespace != "" && !q.resource.namespaced) {
		return request{}, false
	}
	if len(parts) > 1 {
		q.name = parts[1]
	}
	if len(parts) > 2 {
		q.sub = strings.Join(parts[2:], "/")
	}
	return q, true
}

// verb returns the request's RBAC verb.
func (q request) verb(r *http.Request) string {
	watch := r.URL.Query().Get("watch")
	switch {
	case r.Method == http.MethodPost:
		return "create"
	case r.Method == http.MethodPut:
		return "update"
	case r.Method == http.MethodPatch:
		return "patch"
	case r.Method == http.MethodDelete:
		return "delete"
	case q.name != "":
		return "get"
	case watch == "1" || watch == "true":
		return "watch"
	}
	return "list"
}

func (s *Sim) serveResource(w http.ResponseWriter, r *http.Request, who user, q request) error {
	verb := q.verb(r)
	if !q.resource.review && !who.may(q.access(verb)) {
		return forbidden(who, verb, q)
	}
	switch {
	case q.resource.review && verb == "create":
		return s.review(w, r, who)
	case q.sub != "":
		return s.serveSub(w, r, q)
	case verb == "get":
		return s.serveGet(w, r, q)
	case verb == "list":
		return s.serveList(w, r, q)
	case verb == "watch":
		return s.serveWatch(w, r, q)
	}
	return apierrors.NewMethodNotSupported(q.resource.groupResource(), verb)
}

func (s *Sim) serveSub(w http.ResponseWriter, r *http.Request, q request) error {
	if q.resource == s.kinds.pods {
		switch q.sub {
		case "log":
			return s.podLog(w, r, q)
		case "portforward":
			return s.portForward(w, r, q)
		case "exec":
			return s.podExec(w, r, q)
		}
		if q.sub == "proxy" || strings.HasPrefix(q.sub, "proxy/") {
			return s.podProxy(w, r, q)
		}
	}
	return unknownPath()
}

// forbidden returns RBAC's error, word for word.
func forbidden(who user, verb string, q request) error {
	res := q.resource.groupResource()
	res.Resource = q.word()
	in := " at the cluster scope"
	if q.namespace != "" {
		in = fmt.Sprintf(" in the namespace %q", q.namespace)
	}
	return apierrors.NewForbidden(res, q.name, fmt.Errorf("User %q cannot %s resource %q in API group %q%s", who.name, verb, res.Resource, res.Group, in))
}

func unknownPath() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
}

// fail answers with an error as a Status.
func (s *Sim) fail(w http.ResponseWriter, err error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	body := status.Status()
	body.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Content-Type", contentJSON)
	w.WriteHeader(int(body.Code))
	_ = json.NewEncoder(w).Encode(body)
}

// answer writes a JSON document, compressed if it is long and the client accepts that.
func (s *Sim) answer(w http.ResponseWriter, r *http.Request, doc any) {
	s.answerAs(w, r, contentJSON, doc)
}

func (s *Sim) answerAs(w http.ResponseWriter, r *http.Request, kind string, doc any) {
	body, err := json.Marshal(doc)
	if err != nil {
		s.fail(w, apierrors.NewInternalError(err))
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache, private")
	w.Header().Add("Vary", "Accept-Encoding")
	writeBody(w, r, body, gzipFrom)
}

// form is the representation of objects.
type form struct {
	table  bool
	object metav1.IncludeObjectPolicy // what a table's rows contain
}

// negotiate reads an Accept header: JSON, or a table. Clients that accept only other
// encodings are refused.
func negotiate(r *http.Request) (form, error) {
	f := form{object: metav1.IncludeMetadata}
	if o := metav1.IncludeObjectPolicy(r.URL.Query().Get("includeObject")); o != "" {
		f.object = o
	}
	accept := r.Header.Get("Accept")
	if accept == "" {
		return f, nil
	}
	for part := range strings.SplitSeq(accept, ",") {
		params := strings.Split(strings.ReplaceAll(part, " ", ""), ";")
		switch params[0] {
		case contentJSON, "application/*", "*/*":
		default:
			continue
		}
		as, v1 := "", true
		for _, p := range params[1:] {
			switch key, value, _ := strings.Cut(p, "="); key {
			case "as":
				as = value
			case "v":
				v1 = value == "v1"
			}
		}
		switch {
		case as == "":
			return f, nil
		case as == "Table" && v1:
			f.table = true
			return f, nil
		}
	}
	return f, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: application/json",
	}}
}
