// A linked list in order of arrival: requests in flight, waits that have not ended. A long-lived Set or Map does not
// suit entries that come and go with each request: removal leaves its old table behind, which holds the removed entries
// and references the next table, so from the first table in the old generation on all of them are retained until a full
// garbage collection. Here a removed node references no other.

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

  get first(): A | undefined {
    return this.#first?.value
  }

  append(one: A): ListNode<A> {
    const node: ListNode<A> = { value: one, previous: this.#last, next: undefined, isRemoved: false }
    if (this.#last === undefined) this.#first = node
    else this.#last.next = node
    this.#last = node
    return node
  }

  /** False if it was already removed. */
  remove(node: ListNode<A>): boolean {
    if (node.isRemoved) return false
    const { next: after, previous: before } = node
    if (before === undefined) this.#first = after
    else before.next = after
    if (after === undefined) this.#last = before
    else after.previous = before
    node.isRemoved = true
    node.previous = undefined
    node.next = undefined
    return true
  }

  /** A copy of all values, independent of later changes. */
  toArray(): ReadonlyArray<A> {
    const values: Array<A> = []
    for (let node = this.#first; node !== undefined; node = node.next) values.push(node.value)
    return values
  }
}
