// Who asks: a keyed principal, or an anonymous one named by its source address.

export interface Principal {
  /** `key:<label or hash>` or `ip:<address or /64>`; safe to store, never a secret. */
  readonly id: string
  readonly keyed: boolean
}
