package kubeclient

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Kind is a resource of the API.
type Kind struct{ Group, Version, Plural string }

// Kinds that more than one program reads.
var (
	Nodes      = Kind{"", "v1", "nodes"}
	Pods       = Kind{"", "v1", "pods"}
	CNINodes   = Kind{"vpcresources.k8s.aws", "v1alpha1", "cninodes"}
	ENIConfigs = Kind{"crd.k8s.amazonaws.com", "v1alpha1", "eniconfigs"}
)

// Path is where the API serves the objects of a namespace, "" for all namespaces or none,
// or with more, one object and what belongs to it.
func (k Kind) Path(namespace string, more ...string) string {
	path := "/api/" + k.Version
	if k.Group != "" {
		path = "/apis/" + k.Group + "/" + k.Version
	}
	if namespace != "" {
		path += "/namespaces/" + url.PathEscape(namespace)
	}
	path += "/" + k.Plural
	for _, m := range more {
		path += "/" + url.PathEscape(m)
	}
	return path
}

// objectName is what the API accepts as a name.
var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// MaxName is the length of the longest name.
const MaxName = 253

// CheckName refuses what the API does not accept as the name of an object. Names come from
// container runtimes, labels and other programs, and become part of a path.
func CheckName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the name of the %s is empty", what)
	case len(name) > MaxName || !objectName.MatchString(name) || strings.Contains(name, ".."):
		return errors.New("the name of the " + what + " is not a valid Kubernetes name")
	}
	return nil
}
