// Who is there, in the order in which they came: requests that are being answered, waits that have not ended. A Set or
// a Map that lives long is no place for what comes and goes with each request. Removing leaves its old table behind,
// which holds those who were there then and leads to the next table: from the first one that grew old, all of them and
// whoever stood in them stay in memory until all of it is collected. Here nothing of who left leads to anybody else.

/** Where one stands. */
export interface ListNode<A> {
  readonly value: A
  previous: ListNode<A> | undefined
  next: ListNode<A> | undefined
  isRemoved: boolean
}

export class LinkedList<A> {
  #first: ListNode<A> | undefined
  #last: ListNode<A> | undefined

  get isEmpty(): boolean {
    return this.#first === undefined
  }

  /** The one who has been there longest. */
  get first(): A | undefined {
    return this.#first?.value
  }

  append(one: A): ListNode<A> {
    const place: ListNode<A> = { value: one, previous: this.#last, next: undefined, isRemoved: false }
    if (this.#last === undefined) this.#first = place
    else this.#last.next = place
    this.#last = place
    return place
  }

  /** False for one who had left already. */
  remove(place: ListNode<A>): boolean {
    if (place.isRemoved) return false
    const { next: after, previous: before } = place
    if (before === undefined) this.#first = after
    else before.next = after
    if (after === undefined) this.#last = before
    else after.previous = before
    place.isRemoved = true
    place.previous = undefined
    place.next = undefined
    return true
  }

  /** All who are there now, whoever comes or goes meanwhile. */
  toArray(): ReadonlyArray<A> {
    const found: Array<A> = []
    for (let place = this.#first; place !== undefined; place = place.next) found.push(place.value)
    return found
  }
}
