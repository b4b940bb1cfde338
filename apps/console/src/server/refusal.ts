/** The request is refused, with a page that says why and what to do. The text holds no guest's value. */
export class Refusal extends Error {
  override name = "Refusal";
  readonly status: number;
  readonly title: string;

  constructor(status: number, title: string, message: string) {
    super(message);
    this.status = status;
    this.title = title;
  }
}
