package fleetsim

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// selection describes which of a resource's objects a request wants.
type selection struct {
	resource  *resource
	namespace string
	labels    labels.Selector
	fields    fields.Selector
	form      form
}

func (s *Sim) selection(r *http.Request, q request) (selection, error) {
	sel := selection{resource: q.resource, namespace: q.namespace}
	values := r.URL.Query()
	var err error
	if sel.form, err = negotiate(r); err != nil {
		return sel, err
	}
	if sel.labels, err = labels.Parse(values.Get("labelSelector")); err != nil {
		return sel, apierrors.NewBadRequest(fmt.Sprintf("unable to parse requirement: %v", err))
	}
	if sel.fields, err = fields.ParseSelector(values.Get("fieldSelector")); err != nil {
		return sel, apierrors.NewBadRequest(err.Error())
	}
	if q.name != "" {
		sel.fields = fields.AndSelectors(sel.fields, fields.OneTermEqualSelector("metadata.name", q.name))
	}
	known := map[string]bool{"metadata.name": true, "metadata.namespace": true}
	for _, name := range q.resource.fieldNames {
		known[name] = true
	}
	for _, req := range sel.fields.Requirements() {
		if !known[req.Field] {
			return sel, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", req.Field))
		}
	}
	return sel, nil
}

// matches reports whether an object is selected.
func (sel selection) matches(o runtime.Object) bool {
	if o == nil {
		return false
	}
	m, err := meta.Accessor(o)
	if err != nil || (sel.namespace != "" && m.GetNamespace() != sel.namespace) {
		return false
	}
	if !sel.labels.Empty() && !sel.labels.Matches(labels.Set(m.GetLabels())) {
		return false
	}
	if sel.fields.Empty() {
		return true
	}
	set := fields.Set{}
	if sel.resource.fields != nil {
		set = sel.resource.fields(o)
	}
	set["metadata.name"], set["metadata.namespace"] = m.GetName(), m.GetNamespace()
	return sel.fields.Matches(set)
}

// entries returns the candidates.
func (sel selection) entries(s *Sim) []entry {
	return sel.resource.entries(s, sel.namespace, sel.fields)
}

func (s *Sim) serveGet(w http.ResponseWriter, r *http.Request, q request) error {
	sel, err := s.selection(r, q)
	if err != nil {
		return err
	}
	o := s.lookup(q)
	if o == nil {
		return apierrors.NewNotFound(q.resource.groupResource(), q.name)
	}
	if sel.form.table {
		t := sel.table([]runtime.Object{o}, s, true)
		m, _ := meta.Accessor(o) // every object has one
		t.ResourceVersion = m.GetResourceVersion()
		s.answer(w, r, t)
		return nil
	}
	s.answer(w, r, o)
	return nil
}

// lookup finds one object.
func (s *Sim) lookup(q request) runtime.Object {
	if q.resource.entries == nil {
		return nil
	}
	for _, e := range q.resource.entries(s, q.namespace, fields.OneTermEqualSelector("metadata.name", q.name)) {
		if e.name == q.name && e.namespace == q.namespace {
			return e.build()
		}
	}
	return nil
}

// mark is a continue token: where the next page starts, and the version of the first page.
type mark struct {
	Version uint64 `json:"rv"`
	After   string `json:"after"`
}

func (s *Sim) serveList(w http.ResponseWriter, r *http.Request, q request) error {
	if q.resource.entries == nil {
		return apierrors.NewMethodNotSupported(q.resource.groupResource(), "list")
	}
	sel, err := s.selection(r, q)
	if err != nil {
		return err
	}
	limit := 0
	if text := r.URL.Query().Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 0 {
			return apierrors.NewBadRequest(fmt.Sprintf("invalid limit %q", text))
		}
	}
	// A watch from this version has all later changes.
	at := mark{Version: s.hub.current()}
	if token := r.URL.Query().Get("continue"); token != "" {
		if at, err = s.readMark(token); err != nil {
			return err
		}
	}
	all := sel.entries(s)
	begin := 0
	if at.After != "" {
		begin = sort.Search(len(all), func(i int) bool { return all[i].key() > at.After })
	}
	var items []runtime.Object
	list := metav1.ListMeta{ResourceVersion: strconv.FormatUint(at.Version, 10)}
	for i, e := range all[begin:] {
		o := e.build()
		if !sel.matches(o) {
			continue
		}
		if limit > 0 && len(items) == limit {
			list.Continue = mark{at.Version, all[begin+i-1].key()}.String()
			if sel.labels.Empty() && sel.fields.Empty() {
				left := int64(len(all) - begin - i)
				list.RemainingItemCount = &left
			}
			break
		}
		items = append(items, o)
	}
	if sel.form.table {
		t := sel.table(items, s, true)
		t.ListMeta = list
		s.answer(w, r, t)
		return nil
	}
	if items == nil {
		items = []runtime.Object{}
	}
	s.answer(w, r, struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`
		Items           []runtime.Object `json:"items"`
	}{metav1.TypeMeta{Kind: q.resource.kind + "List", APIVersion: q.resource.groupVersion()}, list, items})
	return nil
}

func (m mark) String() string {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // two plain members
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func (s *Sim) readMark(token string) (mark, error) {
	var m mark
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil || m.Version > s.hub.current() {
		return m, apierrors.NewBadRequest("continue key is not valid")
	}
	if m.Version < s.hub.oldest() {
		return m, apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.")
	}
	return m, nil
}

// table shows objects as kubectl prints them, with columns if head is true.
func (sel selection) table(items []runtime.Object, s *Sim, head bool) *metav1.Table {
	t := &metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}, Rows: make([]metav1.TableRow, 0, len(items))}
	if head {
		t.ColumnDefinitions = sel.resource.columns
	}
	for _, o := range items {
		row := metav1.TableRow{Cells: sel.resource.cells(s, o)}
		switch sel.form.object {
		case metav1.IncludeNone:
		case metav1.IncludeObject:
			row.Object.Object = o
		default:
			row.Object.Object = partial(o)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// partial returns an object's metadata only.
func partial(o runtime.Object) *metav1.PartialObjectMetadata {
	p := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}}
	m, err := meta.Accessor(o)
	if err != nil {
		return p
	}
	p.Name, p.Namespace, p.UID, p.ResourceVersion = m.GetName(), m.GetNamespace(), m.GetUID(), m.GetResourceVersion()
	p.CreationTimestamp, p.Labels, p.Annotations = m.GetCreationTimestamp(), m.GetLabels(), m.GetAnnotations()
	p.OwnerReferences = m.GetOwnerReferences()
	return p
}
