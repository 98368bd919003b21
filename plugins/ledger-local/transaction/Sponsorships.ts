// The open sponsorships within one transaction: sponsor by sponsored account, begun and not ended. The entries record
// sponsorships that have been used (see reserves.ts).
import { equalBytes, latin1, type PublicKey } from "../engine/xdr/Xdr.ts"

/** The sponsorships in effect: sponsored account → its sponsor. */
export class Sponsorships {
  readonly #sponsors = new Map<string, PublicKey>()

  sponsorOf(id: PublicKey): PublicKey | undefined {
    return this.#sponsors.get(latin1(id.ed25519))
  }

  isSponsoring(id: PublicKey): boolean {
    for (const sponsor of this.#sponsors.values()) if (equalBytes(sponsor.ed25519, id.ed25519)) return true
    return false
  }

  begin(sponsored: PublicKey, sponsor: PublicKey): void {
    this.#sponsors.set(latin1(sponsored.ed25519), sponsor)
  }

  end(sponsored: PublicKey): boolean {
    return this.#sponsors.delete(latin1(sponsored.ed25519))
  }

  get any(): boolean {
    return this.#sponsors.size > 0
  }
}
