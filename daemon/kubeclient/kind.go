package kubeclient

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"cnictl/daemon/lazy"
)

// Kind is a resource type of the API.
type Kind struct{ Group, Version, Plural string }

// Kinds that more than one program reads.
var (
	Nodes      = Kind{"", "v1", "nodes"}
	Pods       = Kind{"", "v1", "pods"}
	CNINodes   = Kind{"vpcresources.k8s.aws", "v1alpha1", "cninodes"}
	ENIConfigs = Kind{"crd.k8s.amazonaws.com", "v1alpha1", "eniconfigs"}
)

// Path returns the API path for the objects of a namespace ("" for all namespaces or none).
// With more, it is the path of one object and its subresources.
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

// objectName matches the names that the API accepts.
var objectName = lazy.Regexp(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// MaxName is the length of the longest name, in bytes.
const MaxName = 253

// CheckName refuses object names that the API does not accept. Names come from container
// runtimes, labels and other programs, and become part of a path.
func CheckName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the name of the %s is empty", what)
	case len(name) > MaxName || !objectName().MatchString(name) || strings.Contains(name, ".."):
		return errors.New("the name of the " + what + " is not a valid Kubernetes name")
	}
	return nil
}
