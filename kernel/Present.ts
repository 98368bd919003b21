// Who is there, in the order in which they came: requests that are being answered, waits that have not ended. A Set or
// a Map that lives long is no place for what comes and goes with each request. Removing leaves its old table behind,
// which holds those who were there then and leads to the next table: from the first one that grew old, all of them and
// whoever stood in them stay in memory until all of it is collected. Here nothing of who left leads to anybody else.

/** Where one stands. */
export interface Spot<A> {
  readonly one: A
  before: Spot<A> | undefined
  after: Spot<A> | undefined
  isLeft: boolean
}

export class Present<A> {
  #first: Spot<A> | undefined
  #last: Spot<A> | undefined

  get isEmpty(): boolean {
    return this.#first === undefined
  }

  /** The one who has been there longest. */
  get first(): A | undefined {
    return this.#first?.one
  }

  enter(one: A): Spot<A> {
    const place: Spot<A> = { one, before: this.#last, after: undefined, isLeft: false }
    if (this.#last === undefined) this.#first = place
    else this.#last.after = place
    this.#last = place
    return place
  }

  /** False for one who had left already. */
  leave(place: Spot<A>): boolean {
    if (place.isLeft) return false
    const { after, before } = place
    if (before === undefined) this.#first = after
    else before.after = after
    if (after === undefined) this.#last = before
    else after.before = before
    place.isLeft = true
    place.before = undefined
    place.after = undefined
    return true
  }

  /** All who are there now, whoever comes or goes meanwhile. */
  all(): ReadonlyArray<A> {
    const found: Array<A> = []
    for (let place = this.#first; place !== undefined; place = place.after) found.push(place.one)
    return found
  }
}
