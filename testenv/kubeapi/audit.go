package kubeapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

const (
	auditPolicyFile = "audit.yaml"
	auditLogFile    = "audit.log"
)

// auditPolicy writes a line about each answer to a ServiceAccount.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: Metadata
    userGroups: ["system:serviceaccounts"]
  - level: None
`

// Denial is a request that RBAC refused.
type Denial struct {
	User  string // "aws-node"
	Right string // "patch pods", "list eniconfigs.crd.k8s.amazonaws.com", "get /metrics"
}

func (d Denial) String() string { return d.User + " may not " + d.Right }

// auditEvent is what is read of an event of audit.k8s.io/v1.
type auditEvent struct {
	Verb       string
	RequestURI string
	User       struct{ Username string }
	ObjectRef  *struct{ Resource, Subresource, APIGroup string }

	ResponseStatus struct{ Code int }
}

func (e auditEvent) denial() Denial {
	what, _, _ := strings.Cut(e.RequestURI, "?")
	if r := e.ObjectRef; r != nil {
		what = r.Resource
		if r.Subresource != "" {
			what += "/" + r.Subresource
		}
		if r.APIGroup != "" {
			what += "." + r.APIGroup
		}
	}
	return Denial{User: strings.TrimPrefix(e.User.Username, userName("")), Right: e.Verb + " " + what}
}

// maxAuditLine bounds a line of the audit log, which repeats what a client sent.
const maxAuditLine = 1 << 20

// Denied lists the requests of ServiceAccounts that the server refused so far, each
// kind once, in order.
func (s *Server) Denied() ([]Denial, error) {
	f, err := os.Open(filepath.Join(s.dir, auditLogFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no ServiceAccount has asked for anything
	}
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	defer f.Close()
	var out []Denial
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxAuditLine)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(`"code":403`)) {
			continue // most of a long test: not worth decoding
		}
		var e auditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
		if d := e.denial(); e.ResponseStatus.Code == http.StatusForbidden && !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	return out, nil
}

// expectations are the denials that tests announced.
type expectations struct {
	mu   sync.Mutex // guards list
	list []Denial
}

// ExpectDenied says that the server will refuse a right to a user, such as "patch pods"
// to "aws-node", and that this is no mistake. In a shared server it holds for all tests.
func (s *Server) ExpectDenied(user, right string) {
	s.expected.mu.Lock()
	defer s.expected.mu.Unlock()
	s.expected.list = append(s.expected.list, Denial{User: user, Right: right})
}

// unexpectedDenials is an error that names what nobody expected to be refused.
func (s *Server) unexpectedDenials() error {
	denied, err := s.Denied()
	if err != nil {
		return err
	}
	s.expected.mu.Lock()
	defer s.expected.mu.Unlock()
	var errs []error
	for _, d := range denied {
		if !slices.Contains(s.expected.list, d) {
			errs = append(errs, fmt.Errorf("%s: deploy/rbac does not grant it", d))
		}
	}
	return errors.Join(errs...)
}
