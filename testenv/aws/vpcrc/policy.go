package vpcrc

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// policy is the relevant part of a SecurityGroupPolicy.
type policy struct {
	Spec struct {
		PodSelector            *metav1.LabelSelector `json:"podSelector"`
		ServiceAccountSelector *metav1.LabelSelector `json:"serviceAccountSelector"`
		SecurityGroups         struct {
			GroupIDs []string `json:"groupIds"`
		} `json:"securityGroups"`
	} `json:"spec"`
}

// matchGroups returns the union of the groups of all policies that match a pod's labels and
// its ServiceAccount's labels, in the order of the policies.
func matchGroups(policies []policy, pod, account map[string]string) []string {
	var out []string
	for _, p := range policies {
		if !p.matches(pod, account) {
			continue
		}
		for _, g := range p.Spec.SecurityGroups.GroupIDs {
			if !slices.Contains(out, g) {
				out = append(out, g)
			}
		}
	}
	return out
}

// matches reports whether every selector of the policy matches. A policy without a selector
// or without a group is invalid and matches nothing.
func (p policy) matches(pod, account map[string]string) bool {
	s := p.Spec
	if s.PodSelector == nil && s.ServiceAccountSelector == nil || len(s.SecurityGroups.GroupIDs) == 0 {
		return false
	}
	return selects(s.PodSelector, pod) && selects(s.ServiceAccountSelector, account)
}

// selects reports whether a selector matches. An absent or empty selector matches everything,
// an invalid one nothing.
func selects(s *metav1.LabelSelector, set map[string]string) bool {
	if s == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(set))
}
