/** Something that an old client does; throws where it does not find what it should. */
interface Chapter {
    void check(Broker broker) throws Exception;
}
