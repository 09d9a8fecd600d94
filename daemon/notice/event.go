package notice

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/logline"
)

// Upstream's reasons, which do not derive from a cause's code.
const (
	ReasonMissingIAM      = "MissingIAMPermissions"
	ReasonSubnetExclusion = "SubnetExclusionCheckFailed"
)

// ReasonHostNetworkChanged is ours: a program on the node removed what the CNI had set up.
const ReasonHostNetworkChanged = "HostNetworkChanged"

// ReasonInstanceLimit is ours: EC2 accepts fewer network interfaces or addresses than the instance
// type is known to take.
const ReasonInstanceLimit = "InstanceLimitLower"

// ReasonSetting is ours: a setting cannot take effect on the node.
const ReasonSetting = "SettingNotInEffect"

// defaultAction is the action of an event that specifies none.
const defaultAction = "AssignAddress"

// Limits of the API server (events.k8s.io/v1).
const (
	maxNote = 1024 // bytes
	maxWord = 128  // bytes of an action
)

// iamPolicyPage is the page that upstream's message names; people search for that sentence.
const iamPolicyPage = "https://github.com/aws/amazon-vpc-cni-k8s/blob/master/docs/iam-policy.md"

// Ref names the object that an event refers to.
type Ref struct {
	Kind            string // "Pod" or "Node"
	Namespace, Name string // Namespace is "" for a Node
	UID             string // "" = the adapter looks it up
}

// OfNode reports whether the object is a Node.
func (r Ref) OfNode() bool { return r.Kind == "Node" }

// Event is a candidate event.
type Event struct {
	Reason  string // CamelCase, stable
	Action  string // what was being done: "ec2:CreateNetworkInterface", "AssignAddress"
	Note    string // a sentence for people
	Warning bool
	About   Ref
}

// For builds the event of a cause. action is the EC2 action that was refused, or "" for
// assigning an address to a pod. detail may be empty; it is an error's text and may quote
// external input.
func For(code cause.Code, about Ref, action, detail string) Event {
	if code == cause.EC2Unauthorized {
		return MissingIAM(about, action)
	}
	if code.Title() == "" {
		code = cause.Internal
	}
	note := code.Title()
	if detail != "" {
		note += ": " + detail
	}
	return Event{Reason: Reason(code), Action: word(action), Note: bounded(note, maxNote), Warning: true, About: about}
}

// MissingIAM builds the event of an EC2 action that the node's IAM role does not allow, with
// upstream's wording.
func MissingIAM(about Ref, action string) Event {
	if action == "" {
		action = "unknown"
	}
	action = word("ec2:" + strings.TrimPrefix(action, "ec2:"))
	return Event{
		Reason: ReasonMissingIAM, Action: action, Warning: true, About: about,
		Note: fmt.Sprintf("%s%s due to missing permissions. Please refer %s to attach relevant policy to IAM role",
			logline.TextUnauthorized, strings.TrimPrefix(action, "ec2:"), iamPolicyPage),
	}
}

// SubnetExclusionUnknown reports that EC2 did not say whether a subnet is excluded from
// use; its ENI is used anyway.
func SubnetExclusionUnknown(about Ref, subnet, detail string) Event {
	return Event{
		Reason: ReasonSubnetExclusion, Action: "ec2:DescribeSubnets", Warning: true, About: about,
		Note: bounded(fmt.Sprintf("could not check whether %s is excluded from use, assuming that it is not: %s", subnet, detail), maxNote),
	}
}

// HostNetworkChanged reports that a program on the node removed what the CNI had set up,
// and that it was restored. objects are kinds of objects; detail names some.
func HostNetworkChanged(about Ref, objects []string, detail string) Event {
	return Event{
		Reason: ReasonHostNetworkChanged, Action: "AssertHostNetwork", Warning: true, About: about,
		Note: bounded(fmt.Sprintf("another program on the node removed host network state of the CNI; it was restored (%s): %s", strings.Join(objects, ", "), detail), maxNote),
	}
}

// InstanceLimit reports a limit that EC2 stated below that of the instance type. action is the
// EC2 action that was refused.
func InstanceLimit(about Ref, action, detail string) Event {
	return Event{Reason: ReasonInstanceLimit, Action: word("ec2:" + action), Note: bounded(detail, maxNote), Warning: true, About: about}
}

// Setting reports a setting that cannot take effect on the node; detail says why, and what to do.
func Setting(about Ref, variable, detail string) Event {
	return Event{Reason: ReasonSetting, Action: word(variable), Note: bounded(detail, maxNote), Warning: true, About: about}
}

// Reason converts the code to CamelCase: "pool-dry" becomes PoolDry.
func Reason(code cause.Code) string {
	if code == cause.EC2Unauthorized {
		return ReasonMissingIAM
	}
	var b strings.Builder
	for part := range strings.SplitSeq(string(code), "-") {
		switch part {
		case "": // no code has one
		case "ec2", "eni", "nic":
			b.WriteString(strings.ToUpper(part))
		case "eniconfig":
			b.WriteString("ENIConfig")
		default:
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// Repeated adds to the note how many events were suppressed since the last one.
func (e Event) Repeated(suppressed int) Event {
	if suppressed > 0 {
		tail := fmt.Sprintf(" (and %d times since the last event)", suppressed)
		e.Note = bounded(e.Note, maxNote-len(tail)) + tail
	}
	return e
}

func word(action string) string {
	if action = bounded(action, maxWord); action == "" {
		return defaultAction
	}
	return action
}

// bounded makes external text fit for the API server: valid UTF-8, one line, cut to most
// bytes.
func bounded(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) <= most {
		return s
	}
	const cut = "…"
	end := most - len(cut)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + cut
}
