package fakeaws

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// policy is an IAM policy of an identity: it allows what its statements allow and none denies.
type policy struct{ statements []statement }

type statement struct {
	deny      bool
	actions   []string // patterns like ec2:Describe*
	resources []string // patterns of ARNs

	conditions []condition
}

const maxPolicy = 10240 // bytes: IAM's quota of a role's inline policies

// oneOrMany is a string or a list of strings, as in IAM documents.
type oneOrMany []string

func (l *oneOrMany) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*l = oneOrMany{one}
		return nil
	}
	var many []string
	if err := json.Unmarshal(b, &many); err != nil {
		return fmt.Errorf("%.100s: a text or a list of texts is accepted", b)
	}
	*l = many
	return nil
}

// parsePolicy reads a policy document. Anything unsupported is an error that names it:
// NotAction, NotResource, Principal, unknown operators and keys of a Condition on an EC2 action,
// and an EC2 action that this world does not have.
func parsePolicy(b []byte) (policy, error) {
	if len(b) > maxPolicy {
		return policy{}, fmt.Errorf("parse policy: %d bytes, %d are accepted", len(b), maxPolicy)
	}
	var doc struct {
		Version   string
		ID        string `json:"Id"`
		Statement []struct {
			Sid, Effect      string
			Action, Resource oneOrMany
			Condition        json.RawMessage
		}
	}
	if err := strictJSON(b, &doc); err != nil {
		return policy{}, fmt.Errorf("parse policy: %w", err)
	}
	if doc.Version != "2012-10-17" {
		return policy{}, fmt.Errorf("parse policy: version %q: 2012-10-17 is accepted", doc.Version)
	}
	if len(doc.Statement) == 0 {
		return policy{}, fmt.Errorf("parse policy: there is no statement")
	}
	var p policy
	for i, d := range doc.Statement {
		s := statement{deny: d.Effect == "Deny", actions: d.Action, resources: d.Resource}
		err := s.check(d.Effect)
		if err == nil && d.Condition != nil && slices.ContainsFunc(s.actions, ofEC2) {
			var read map[string]map[string]oneOrMany
			if err = strictJSON(d.Condition, &read); err == nil {
				s.conditions, err = readConditions(read)
			}
		}
		if err != nil {
			return policy{}, fmt.Errorf("parse policy: statement %d (%q): %w", i+1, d.Sid, err)
		}
		p.statements = append(p.statements, s)
	}
	return p, nil
}

func (s statement) check(effect string) error {
	switch {
	case effect != "Allow" && effect != "Deny":
		return fmt.Errorf("effect %q: Allow or Deny is accepted", effect)
	case len(s.actions) == 0:
		return fmt.Errorf("there is no Action")
	case len(s.resources) == 0:
		return fmt.Errorf("there is no Resource")
	}
	for _, a := range s.actions {
		if err := checkActionPattern(a); err != nil {
			return err
		}
	}
	for _, r := range s.resources {
		if r != "*" && !strings.HasPrefix(r, "arn:") {
			return fmt.Errorf("resource %q: * or an ARN is accepted", r)
		}
	}
	return nil
}

// checkActionPattern refuses EC2 actions that match no call of this world: most likely they
// are misspelt.
func checkActionPattern(pattern string) error {
	if pattern == "*" {
		return nil
	}
	service, name, ok := strings.Cut(pattern, ":")
	if !ok || service == "" || name == "" || strings.ContainsAny(service, "*?") {
		return fmt.Errorf("action %q: service:Name is accepted, as ec2:DescribeSubnets", pattern)
	}
	if !ofEC2(pattern) {
		return nil // such calls do not reach this world
	}
	for known := range actions {
		if match(strings.ToLower(name), strings.ToLower(known)) {
			return nil
		}
	}
	return fmt.Errorf("action %q: no such action", pattern)
}

// ofEC2 reports whether a pattern may match an EC2 action. The service part of a checked
// pattern has no wildcards.
func ofEC2(pattern string) bool {
	service, _, _ := strings.Cut(pattern, ":")
	return service == "*" || strings.EqualFold(service, "ec2")
}

// PolicyActions lists the actions that a policy document allows, in its spelling and order,
// without duplicates.
func PolicyActions(document []byte) ([]string, error) {
	p, err := parsePolicy(document)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, s := range p.statements {
		if !s.deny {
			out = append(out, s.actions...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// verdict is a policy's decision.
type verdict uint8

const (
	notAllowed verdict = iota
	allowed
	denied // by an explicit statement, which overrides any that allows
)

func (p policy) judge(n need) verdict {
	v := notAllowed
	for _, s := range p.statements {
		switch {
		case !s.covers(n) || !s.met(n):
		case s.deny:
			return denied
		default:
			v = allowed
		}
	}
	return v
}

func (s statement) covers(n need) bool {
	return slices.ContainsFunc(s.actions, func(a string) bool { return match(strings.ToLower(a), strings.ToLower(n.action)) }) &&
		slices.ContainsFunc(s.resources, func(r string) bool { return match(r, n.resource) })
}

// met reports whether the statement's conditions hold.
func (s statement) met(n need) bool {
	return !slices.ContainsFunc(s.conditions, func(c condition) bool { return !c.holds(n.keys) })
}

// lacks lists the condition keys on which the decision depends and that the request lacks.
func (p policy) lacks(n need) (keys []string) {
	for _, s := range p.statements {
		for _, c := range s.conditions {
			if _, given := n.keys[c.key]; !given && s.covers(n) {
				keys = append(keys, c.key)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// match compares a text with a pattern in which * matches any text and ? any character.
// It takes at most time proportional to the product of the lengths.
func match(pattern, s string) bool {
	var star, mark = -1, 0 // the last * so far, and where its text currently ends
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == s[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}
