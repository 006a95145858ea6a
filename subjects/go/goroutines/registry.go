package main

import "sync"

type id uint64

type properties map[string]any

// service is something that is started when all that it requires is there, and stopped before any of that goes. Both
// run in goroutines of their own.
type service interface {
	start()
	stop()
}

// injected is a service that is given what it requires one by one, before it starts.
type injected interface {
	inject(name string, provider id, instance any)
}

// spec says how a service is made and what it has to do with others.
type spec struct {
	properties properties
	requires   []string
	provides   string // what it is to others; empty: nothing
	only       id     // to whom it is that; 0: to all
	made       service
	// Instead of made: makes it when what it requires is there, in the order of requires.
	make func(properties, []any) service
}

// factory makes something for one that requires it.
type factory func(requester id, properties properties) spec

type state int

const (
	installed state = iota
	starting
	active
	leaving
	stopping
)

type entry struct {
	spec
	id         id
	service    service
	state      state
	remove     bool
	again      bool // to be started again as soon as it has stopped
	uses       map[string]*entry
	dependents map[id]*entry
}

// registry keeps the services of an application. Methods with a capital letter lock; the others are called locked.
type registry struct {
	mutex     sync.Mutex
	next      id
	services  map[id]*entry
	waiting   map[string]map[id]*entry // who lacks something, by its name
	online    map[string]*entry        // who provides something to all
	factories map[string]factory
	quitting  bool
	done      chan struct{}
}

func newRegistry() *registry {
	return &registry{
		services:  map[id]*entry{},
		waiting:   map[string]map[id]*entry{},
		online:    map[string]*entry{},
		factories: map[string]factory{},
		done:      make(chan struct{}),
	}
}

// Insert adds a service, which starts when it can.
func (r *registry) Insert(spec spec) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.insert(spec)
}

// MakeOnRequest has factory called for each service that lacks the named thing.
func (r *registry) MakeOnRequest(name string, factory factory) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.factories[name] = factory
	for _, waiting := range r.waiting[name] {
		r.insert(factory(waiting.id, waiting.properties))
	}
}

// Start starts a service again that was stopped.
func (r *registry) Start(id id) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if e := r.services[id]; e != nil {
		e.again = e.state == leaving || e.state == stopping
		r.startIfReady(e)
	}
}

// Stop stops a service, and those that use it before it.
func (r *registry) Stop(id id) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if e := r.services[id]; e != nil {
		r.stop(e, false)
	}
}

// Quit stops and removes all services.
func (r *registry) Quit() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.quitting = true
	for _, e := range r.services {
		r.stop(e, true)
	}
}

// Wait returns when all services are gone after Quit.
func (r *registry) Wait() { <-r.done }

func (r *registry) insert(spec spec) {
	r.next++
	e := &entry{spec: spec, id: r.next, service: spec.made, uses: map[string]*entry{}, dependents: map[id]*entry{}}
	r.services[e.id] = e
	for _, name := range spec.requires {
		r.lack(e, name)
		if provider := r.online[name]; provider != nil {
			r.offer(provider, e)
		} else if factory := r.factories[name]; factory != nil {
			r.insert(factory(e.id, e.properties))
		}
	}
	r.startIfReady(e)
}

func (r *registry) lack(e *entry, name string) {
	if r.waiting[name] == nil {
		r.waiting[name] = map[id]*entry{}
	}
	r.waiting[name][e.id] = e
}

// offer gives a service to one that lacks it.
func (r *registry) offer(provider, e *entry) {
	name := provider.provides
	if e == nil || r.waiting[name][e.id] == nil {
		return
	}
	delete(r.waiting[name], e.id)
	e.uses[name] = provider
	provider.dependents[e.id] = e
	if into, ok := e.service.(injected); ok {
		into.inject(name, provider.id, provider.service)
	}
	r.startIfReady(e)
}

func (r *registry) startIfReady(e *entry) {
	if e.state != installed || len(e.uses) < len(e.requires) {
		return
	}
	if e.make != nil {
		arguments := make([]any, len(e.requires))
		for i, name := range e.requires {
			arguments[i] = e.uses[name].service
		}
		e.service = e.make(e.properties, arguments)
	}
	e.state = starting
	go func() {
		e.service.start()
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.started(e)
	}()
}

func (r *registry) started(e *entry) {
	e.state = active
	switch {
	case e.provides == "":
	case e.only != 0:
		r.offer(e, r.services[e.only])
	default:
		r.online[e.provides] = e
		for _, waiting := range r.waiting[e.provides] {
			r.offer(e, waiting)
		}
	}
	if r.quitting {
		r.stop(e, true)
	}
	for _, provider := range e.uses {
		if provider.state == leaving {
			r.stop(e, false)
			return
		}
	}
}

func (r *registry) stop(e *entry, remove bool) {
	e.remove = e.remove || remove
	switch {
	case e.state == active:
		e.state = leaving
		if r.online[e.provides] == e {
			delete(r.online, e.provides)
		}
		for _, dependent := range e.dependents {
			if dependent.state == installed {
				r.release(dependent, e)
			} else {
				r.stop(dependent, false)
			}
		}
		r.stopIfUnused(e)
	case e.state == installed && e.remove:
		r.delete(e)
	}
}

func (r *registry) stopIfUnused(e *entry) {
	if e.state != leaving || len(e.dependents) > 0 {
		return
	}
	e.state = stopping
	go func() {
		e.service.stop()
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.stopped(e)
	}()
}

func (r *registry) stopped(e *entry) {
	e.state = installed
	for _, provider := range e.uses {
		// One that stays is kept, so that this service starts again as soon as the others are back.
		if e.remove || provider.state == leaving {
			r.release(e, provider)
		}
	}
	if e.remove {
		r.delete(e)
		return
	}
	if e.make != nil {
		e.service = nil
	}
	if e.again {
		e.again = false
		r.startIfReady(e)
	}
}

// release has a service no longer use another, whose name it then lacks.
func (r *registry) release(e, provider *entry) {
	delete(e.uses, provider.provides)
	r.lack(e, provider.provides)
	delete(provider.dependents, e.id)
	r.stopIfUnused(provider)
}

func (r *registry) delete(e *entry) {
	for _, name := range e.requires {
		delete(r.waiting[name], e.id)
	}
	for _, provider := range e.uses {
		delete(provider.dependents, e.id)
	}
	delete(r.services, e.id)
	if r.quitting && len(r.services) == 0 {
		close(r.done)
	}
}
