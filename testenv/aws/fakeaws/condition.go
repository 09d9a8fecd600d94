package fakeaws

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// condition is one key of a statement's Condition. All conditions of a statement must hold, each
// for one of its values or, if negated, for none.
//
// An operator or key that is not listed here is refused: ignoring it would grant too much.
type condition struct {
	operator string // as in operators
	each     bool   // the prefix ForAllValues: holds if it does for each value of the request's
	optional bool   // the suffix IfExists: holds if the request lacks the key
	key      string // in lower case: IAM ignores the case of keys, also of a tag's name in them
	values   []string
}

type operator struct {
	negated bool
	match   func(pattern, value string) bool
}

var operators = map[string]operator{
	"StringEquals":    {false, func(want, value string) bool { return want == value }},
	"StringNotEquals": {true, func(want, value string) bool { return want == value }},
	"StringLike":      {false, match},
	"StringNotLike":   {true, match},
	"ArnEquals":       {false, matchARN}, // IAM treats it like ArnLike
	"ArnLike":         {false, matchARN},
	"ArnNotEquals":    {true, matchARN},
	"ArnNotLike":      {true, matchARN},
	isAbsent:          {},
}

// isAbsent is the operator that asks whether a request lacks a key.
const isAbsent = "Null"

// Condition keys of EC2's actions, in lower case (Service Authorization Reference, "Amazon EC2").
// Those that end in a slash are followed by a tag's key.
const (
	keyResourceTag    = "aws:resourcetag/"
	keyEC2ResourceTag = "ec2:resourcetag/"
	keyRequestTag     = "aws:requesttag/"
	keyVPC            = "ec2:vpc"
	keySubnet         = "ec2:subnet"
	keyRegion         = "ec2:region"
	keyCreateAction   = "ec2:createaction" // only of CreateTags, and only for tags of a resource that is being created
	keyAttribute      = "ec2:attribute/"   // only of requests that change an attribute, followed by its name
	keyTagKeys        = "aws:tagkeys"      // the only one with several values
)

const forAllValues = "ForAllValues:"

// readConditions reads the Condition of a statement: operator, key, values.
func readConditions(in map[string]map[string]oneOrMany) ([]condition, error) {
	var out []condition
	for _, name := range slices.Sorted(maps.Keys(in)) {
		c := condition{}
		c.operator, c.each = strings.CutPrefix(name, forAllValues)
		c.operator, c.optional = strings.CutSuffix(c.operator, "IfExists")
		if _, known := operators[c.operator]; !known || (c.optional || c.each) && c.operator == isAbsent {
			return nil, fmt.Errorf("condition operator %q is not understood", name)
		}
		for _, key := range slices.Sorted(maps.Keys(in[name])) {
			c.key, c.values = strings.ToLower(key), in[name][key]
			if err := c.check(); err != nil {
				return nil, fmt.Errorf("condition %s of %s: %w", name, key, err)
			}
			out = append(out, c)
		}
	}
	return out, nil
}

func (c condition) check() error {
	tag, _, _ := strings.Cut(c.key, "/")
	known := slices.Contains([]string{keyVPC, keySubnet, keyRegion, keyCreateAction, keyTagKeys}, c.key) ||
		slices.Contains([]string{keyResourceTag, keyEC2ResourceTag, keyRequestTag, keyAttribute}, tag+"/") && len(c.key) > len(tag)+1
	switch {
	case !known:
		return fmt.Errorf("the key is not understood")
	case c.each != (c.key == keyTagKeys) && c.operator != isAbsent:
		return fmt.Errorf("%s is accepted for aws:TagKeys, and no other operator", strings.TrimSuffix(forAllValues, ":"))
	case len(c.values) == 0:
		return fmt.Errorf("there is no value")
	}
	for _, v := range c.values {
		if _, err := strconv.ParseBool(v); c.operator == isAbsent && err != nil {
			return fmt.Errorf("value %q: true or false is accepted", v)
		}
		if strings.Contains(v, "${") {
			return fmt.Errorf("value %q: policy variables are not understood", v)
		}
	}
	return nil
}

// holds reports whether a request with these keys meets the condition.
func (c condition) holds(keys contextKeys) bool {
	values, given := keys[c.key]
	if c.operator == isAbsent {
		return slices.Contains(c.values, strconv.FormatBool(!given))
	}
	o := operators[c.operator]
	if !given {
		return c.optional || c.each || o.negated
	}
	return !slices.ContainsFunc(values, func(value string) bool {
		return slices.ContainsFunc(c.values, func(want string) bool { return o.match(want, value) }) == o.negated
	})
}

// matchARN compares the six parts of two ARNs, each of which may be a pattern. The last part
// may contain colons.
func matchARN(pattern, arn string) bool {
	want, have := strings.SplitN(pattern, ":", 6), strings.SplitN(arn, ":", 6)
	return len(have) == 6 && slices.EqualFunc(want, have, match)
}

// contextKeys are the values that a request sets, by condition key in lower case.
type contextKeys map[string][]string

func (keys contextKeys) set(key, value string) { keys[key] = []string{value} }

// setTags sets a key for each tag.
func (keys contextKeys) setTags(prefix string, tags map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		keys.set(prefix+strings.ToLower(k), tags[k])
	}
}

// keysOf returns the condition keys that a resource of a request sets. Interfaces to be made set
// none: the policies of deploy/iam must do without, because the reference leaves their values open.
// The caller holds mu.
func (w *World) keysOf(kind, id string) contextKeys {
	keys := contextKeys{keyRegion: {w.opts.Region}}
	tagged := func(tags map[string]string) {
		keys.setTags(keyResourceTag, tags)
		keys.setTags(keyEC2ResourceTag, tags)
	}
	switch kind {
	case "network-interface":
		if e := w.enis[id]; e != nil {
			tagged(e.Tags)
			keys.set(keyVPC, w.arn("vpc", e.VPCID))
			keys.set(keySubnet, w.arn("subnet", e.SubnetID))
		}
	case "instance":
		if i := w.instances[id]; i != nil {
			tagged(i.Tags)
		}
	case "subnet":
		if n := w.subnets[id]; n != nil {
			tagged(n.Tags)
			keys.set(keyVPC, w.arn("vpc", n.VPCID))
		}
	case "security-group":
		if g := w.groups[id]; g != nil {
			keys.set(keyVPC, w.arn("vpc", g.VPCID))
		}
	}
	return keys
}
