package reading

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cnictl/doctor/evidence"
)

// Trust reads the statements of a role's trust policy that let someone assume the role. Of their
// conditions it reads those on the subject and the audience of an OIDC token.
func Trust(document string) ([]evidence.Trust, error) {
	var policy struct {
		Statement oneOrMany[struct {
			Effect    string
			Principal json.RawMessage
			Action    oneOrMany[string]
			Condition map[string]map[string]oneOrMany[string]
		}]
	}
	if err := json.Unmarshal([]byte(document), &policy); err != nil {
		return nil, fmt.Errorf("parse trust policy: %w", err)
	}
	out := []evidence.Trust{}
	for _, s := range policy.Statement {
		if s.Effect != "Allow" {
			continue
		}
		t := evidence.Trust{Principals: []string{}, Actions: orEmpty(s.Action), Subjects: []string{}, Audiences: []string{}}
		var anyone string
		var kinds map[string]oneOrMany[string]
		if json.Unmarshal(s.Principal, &anyone) == nil {
			t.Principals = append(t.Principals, anyone)
		} else if json.Unmarshal(s.Principal, &kinds) == nil {
			for _, kind := range slices.Sorted(maps.Keys(kinds)) {
				t.Principals = append(t.Principals, kinds[kind]...)
			}
		}
		for operator, keys := range s.Condition {
			if !strings.Contains(operator, "StringEquals") && !strings.Contains(operator, "StringLike") {
				continue
			}
			for key, values := range keys {
				issuer, claim := key[:max(0, strings.LastIndexByte(key, ':'))], key[strings.LastIndexByte(key, ':')+1:]
				if claim != "sub" && claim != "aud" {
					continue
				}
				for _, value := range values {
					if !slices.ContainsFunc(t.Principals, func(p string) bool { return strings.HasSuffix(p, issuer) }) {
						value = key + "=" + value // another provider's: no token has it
					}
					if claim == "sub" {
						t.Subjects = append(t.Subjects, value)
					} else {
						t.Audiences = append(t.Audiences, value)
					}
				}
			}
		}
		slices.Sort(t.Subjects)
		slices.Sort(t.Audiences)
		out = append(out, t)
	}
	return out, nil
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// oneOrMany is a value or a list of values, as in IAM policies.
type oneOrMany[T any] []T

func (l *oneOrMany[T]) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		return json.Unmarshal(text, (*[]T)(l))
	}
	var one T
	if err := json.Unmarshal(text, &one); err != nil {
		return err
	}
	*l = oneOrMany[T]{one}
	return nil
}
