package kube

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// resource is a kind of objects and where the API serves it.
type resource struct {
	base       string // "/api/v1" or "/apis/GROUP/VERSION"
	plural     string
	singular   string // in errors
	namespaced bool
}

var (
	nodes      = resource{base: "/api/v1", plural: "nodes", singular: "node"}
	pods       = resource{base: "/api/v1", plural: "pods", singular: "pod", namespaced: true}
	eniConfigs = resource{base: "/apis/crd.k8s.amazonaws.com/v1alpha1", plural: "eniconfigs", singular: "ENIConfig"}
	cniNodes   = resource{base: "/apis/vpcresources.k8s.aws/v1alpha1", plural: "cninodes", singular: "CNINode"}
	events     = resource{base: "/apis/events.k8s.io/v1", plural: "events", singular: "event", namespaced: true}
)

// objectName is what the API accepts as a name, and so what may be put into a path.
// Names come from container runtimes and from labels.
var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

const maxName = 253

// everywhere is the path of all objects of a resource.
func (r resource) everywhere() string { return r.base + "/" + r.plural }

// in is the path of a namespace's objects.
func (r resource) in(namespace string) (string, error) {
	if err := checkName("namespace", namespace); err != nil {
		return "", err
	}
	return r.base + "/namespaces/" + namespace + "/" + r.plural, nil
}

// object is the path of one object; namespace is "" where the resource has none.
func (r resource) object(namespace, name string) (string, error) {
	if err := checkName(r.singular, name); err != nil {
		return "", err
	}
	if !r.namespaced {
		return r.everywhere() + "/" + name, nil
	}
	dir, err := r.in(namespace)
	return dir + "/" + name, err
}

func checkName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the name of the %s is empty", what)
	case len(name) > maxName || !objectName.MatchString(name) || strings.Contains(name, ".."):
		return errors.New("the name of the " + what + " is none that Kubernetes accepts")
	}
	return nil
}
