package cniwire

import "strconv"

// Request is a decoded request: exactly one of its members is set.
type Request struct {
	Add    *AddRequest
	Del    *DelRequest
	Policy *PolicyRequest
}

const (
	reqPodName       field = 1
	reqPodNamespace  field = 2
	reqPodUID        field = 3
	reqContainerID   field = 4
	reqIfName        field = 5
	reqNetworkName   field = 6
	reqNetns         field = 7
	reqClientVersion field = 8
	reqMultiNIC      field = 9
	reqReason        field = 10
	reqPolicyMode    field = 11
	reqInterfaces    field = 12
	reqDelete        field = 13
)

// requestTexts lists the text fields of a request by number, nil for a number without one.
// Encoding and decoding both use it.
type requestTexts [reqPolicyMode + 1]*string

func (r *AddRequest) texts() requestTexts {
	return requestTexts{
		reqPodName: &r.PodName, reqPodNamespace: &r.PodNamespace, reqPodUID: &r.PodUID,
		reqContainerID: &r.ContainerID, reqIfName: &r.IfName, reqNetworkName: &r.NetworkName,
		reqNetns: &r.Netns, reqClientVersion: &r.ClientVersion,
	}
}

func (r *DelRequest) texts() requestTexts {
	return requestTexts{
		reqPodName: &r.PodName, reqPodNamespace: &r.PodNamespace, reqPodUID: &r.PodUID,
		reqContainerID: &r.ContainerID, reqIfName: &r.IfName, reqNetworkName: &r.NetworkName,
		reqReason: &r.Reason, reqClientVersion: &r.ClientVersion,
	}
}

func (r *PolicyRequest) texts() requestTexts {
	return requestTexts{
		reqPodName: &r.PodName, reqPodNamespace: &r.PodNamespace, reqContainerID: &r.ContainerID, reqPolicyMode: &r.Mode,
	}
}

func (t *requestTexts) append(b []byte) []byte {
	for f, text := range t {
		if text != nil {
			b = appendString(b, field(f), *text)
		}
	}
	return b
}

// read stores the current field if it is a text field of the request.
func (t *requestTexts) read(r *reader) {
	if int(r.field) < len(t) && t[r.field] != nil {
		*t[r.field] = r.text()
	}
}

// AppendAddRequest appends the framed request to b.
func AppendAddRequest(b []byte, r *AddRequest) []byte {
	b, start := beginFrame(b, kindAddRequest)
	texts := r.texts()
	b = texts.append(b)
	b = appendBool(b, reqMultiNIC, r.RequiresMultiNIC)
	return endFrame(b, start)
}

// AppendDelRequest appends the framed request to b.
func AppendDelRequest(b []byte, r *DelRequest) []byte {
	b, start := beginFrame(b, kindDelRequest)
	texts := r.texts()
	return endFrame(texts.append(b), start)
}

// AppendPolicyRequest appends the framed request to b.
func AppendPolicyRequest(b []byte, r *PolicyRequest) []byte {
	b, start := beginFrame(b, kindPolicyRequest)
	texts := r.texts()
	b = texts.append(b)
	b = appendInt32(b, reqInterfaces, r.Interfaces)
	b = appendBool(b, reqDelete, r.Delete)
	return endFrame(b, start)
}

// DecodeRequest reads a frame as returned by ReadFrame. The result does not alias
// the frame.
func DecodeRequest(frame []byte) (Request, error) {
	if len(frame) == 0 {
		return Request{}, malformed("empty frame")
	}
	switch kind(frame[0]) {
	case kindAddRequest:
		add, err := decodeAddRequest(frame[1:])
		return Request{Add: add}, err
	case kindDelRequest:
		del, err := decodeDelRequest(frame[1:])
		return Request{Del: del}, err
	case kindPolicyRequest:
		policy, err := decodePolicyRequest(frame[1:])
		return Request{Policy: policy}, err
	}
	return Request{}, malformed("kind " + strconv.Itoa(int(frame[0])) + " is not a request")
}

func decodeAddRequest(body []byte) (*AddRequest, error) {
	out := &AddRequest{}
	texts := out.texts()
	r := reader{rest: body, what: "ADD request"}
	for r.next() {
		if r.field == reqMultiNIC {
			out.RequiresMultiNIC = r.bool()
		}
		texts.read(&r)
	}
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}

func decodeDelRequest(body []byte) (*DelRequest, error) {
	out := &DelRequest{}
	texts := out.texts()
	r := reader{rest: body, what: "DEL request"}
	for r.next() {
		texts.read(&r)
	}
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}

func decodePolicyRequest(body []byte) (*PolicyRequest, error) {
	out := &PolicyRequest{}
	texts := out.texts()
	r := reader{rest: body, what: "policy request"}
	for r.next() {
		switch r.field {
		case reqInterfaces:
			out.Interfaces = r.int32()
		case reqDelete:
			out.Delete = r.bool()
		}
		texts.read(&r)
	}
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}
