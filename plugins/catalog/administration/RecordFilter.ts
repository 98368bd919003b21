// The filter of the operators' list of resources.

/** Filters of the operators' list of resources; an absent member does not filter. */
export interface RecordFilter {
  readonly state?: string | undefined
  readonly grade?: string | undefined
  readonly type?: string | undefined
  readonly origin?: string | undefined
  readonly payTo?: string | undefined
  /** A part of the URL, the tool's or the seller's name; of the newest 20,000 listings. */
  readonly words?: string | undefined
}
