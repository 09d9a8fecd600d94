package cniwire

import "strconv"

// Request is what the daemon reads: exactly one of Add and Del is set.
type Request struct {
	Add *AddRequest
	Del *DelRequest
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
)

// AppendAddRequest appends the framed request to b.
func AppendAddRequest(b []byte, r *AddRequest) []byte {
	b, start := beginFrame(b, kindAddRequest)
	b = appendString(b, reqPodName, r.PodName)
	b = appendString(b, reqPodNamespace, r.PodNamespace)
	b = appendString(b, reqPodUID, r.PodUID)
	b = appendString(b, reqContainerID, r.ContainerID)
	b = appendString(b, reqIfName, r.IfName)
	b = appendString(b, reqNetworkName, r.NetworkName)
	b = appendString(b, reqNetns, r.Netns)
	b = appendString(b, reqClientVersion, r.ClientVersion)
	b = appendBool(b, reqMultiNIC, r.RequiresMultiNIC)
	return endFrame(b, start)
}

// AppendDelRequest appends the framed request to b.
func AppendDelRequest(b []byte, r *DelRequest) []byte {
	b, start := beginFrame(b, kindDelRequest)
	b = appendString(b, reqPodName, r.PodName)
	b = appendString(b, reqPodNamespace, r.PodNamespace)
	b = appendString(b, reqPodUID, r.PodUID)
	b = appendString(b, reqContainerID, r.ContainerID)
	b = appendString(b, reqIfName, r.IfName)
	b = appendString(b, reqNetworkName, r.NetworkName)
	b = appendString(b, reqReason, r.Reason)
	b = appendString(b, reqClientVersion, r.ClientVersion)
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
	}
	return Request{}, malformed("kind " + strconv.Itoa(int(frame[0])) + " is no request")
}

func decodeAddRequest(body []byte) (*AddRequest, error) {
	out := &AddRequest{}
	r := reader{rest: body, what: "ADD request"}
	for r.next() {
		switch r.field {
		case reqPodName:
			out.PodName = r.text()
		case reqPodNamespace:
			out.PodNamespace = r.text()
		case reqPodUID:
			out.PodUID = r.text()
		case reqContainerID:
			out.ContainerID = r.text()
		case reqIfName:
			out.IfName = r.text()
		case reqNetworkName:
			out.NetworkName = r.text()
		case reqNetns:
			out.Netns = r.text()
		case reqClientVersion:
			out.ClientVersion = r.text()
		case reqMultiNIC:
			out.RequiresMultiNIC = r.bool()
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}

func decodeDelRequest(body []byte) (*DelRequest, error) {
	out := &DelRequest{}
	r := reader{rest: body, what: "DEL request"}
	for r.next() {
		switch r.field {
		case reqPodName:
			out.PodName = r.text()
		case reqPodNamespace:
			out.PodNamespace = r.text()
		case reqPodUID:
			out.PodUID = r.text()
		case reqContainerID:
			out.ContainerID = r.text()
		case reqIfName:
			out.IfName = r.text()
		case reqNetworkName:
			out.NetworkName = r.text()
		case reqReason:
			out.Reason = r.text()
		case reqClientVersion:
			out.ClientVersion = r.text()
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}
